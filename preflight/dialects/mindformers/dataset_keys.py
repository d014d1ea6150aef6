"""What MindFormers' datasets read of their sections, over all releases from 1.0 to 2.0:
they take a key by its name, and nothing tells of another."""

from __future__ import annotations

DATASET = frozenset(
    (
        "add_extra_itm_score auto_tune autotune_per_step batch batch_size column_order construct_args_key data_layout "
        "data_loader dataset_size device_num do_eval drop_remainder dynamic_batch eod_mask_loss eod_reset eod_token_id "
        "eos_id eos_reset eos_token_id eval_interval eval_offset filepath_prefix gmask_id ignore_pad_token_for_loss "
        "img_dynamic_batch input_columns k_test label_transforms mask_policy max_seq_length max_source_length "
        "max_target_length micro_batch micro_batch_num mindrecord mixup_op modal_content_input_columns "
        "modal_content_output_columns modal_content_transforms modal_to_text_transform net_input_columns "
        "num_parallel_workers num_shards numa_enable output_columns packed_num pad_token_id prefetch_size profile "
        "python_multiprocessing rank_id repeat reset_attention_mask return_attention_mask project_columns "
        "reset_position_ids sampler seed seq_length set_init_step shard_id shuffle sop_id text_transforms "
        "token_monitor token_monitor_config tokenizer train_samples transforms use_data_packing "
    ).split()
)
"""Keys of train_dataset and eval_dataset."""

LOADER = frozenset(
    (
        "adaptor_config annotation_dir annotation_file annotation_files batch bin_path cache col_names column_names "
        "columns_list compressed_eod_mask_length config create_attention_mask create_compressed_eod_mask data_files "
        "data_source_type dataset_dir dataset_files dataset_list dataset_name dataset_path dataset_ratios dataset_size "
        "datasets_type doc_stride dtype extra_kwargs file_format file_limit fine_label handler hypothesis_template "
        "idx_path image_dirs input_columns is_align load_func load_indices_npz_path map_function map_function_kwargs "
        "max_chunk_size max_length max_question_len max_seq_len mmap mock_columns mock_dtypes mock_shapes mock_size "
        "multimodal num_padded num_parallel_workers num_samples num_shards nums_per_dataset origin_columns packing "
        "padded_sample path path_prefix phase process_num python_multiprocessing random_mapping read_function "
        "repeat_images return_in_generator sample_nums sampler samples_count samples_num save_indices_npz_path scale "
        "seq_length shard_equal_rows shard_id shuffle shuffle_buffer_size shuffle_dataset size sizes skip_num split "
        "stage sub_data_loader sub_data_loader_args temp_file_dir text_col tokenizer type use_broadcast_data "
    ).split()
)
"""Keys of their data_loader: arguments of the loaders, of MindDataset, and what is taken out before."""
